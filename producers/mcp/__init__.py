"""The MCP interface: the SDK's tools for any Model Context Protocol client, over stdio and at a node's /mcp."""
