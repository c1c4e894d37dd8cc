"""The MCP door: the tools of the SDK for any client of the Model Context Protocol, over stdio and at a node's /mcp."""
