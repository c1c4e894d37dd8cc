"""Bodies of HTTP answers, as the OpenAPI document describes them; a file a family."""
