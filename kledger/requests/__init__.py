"""Request bodies of the HTTP interface, which the other interfaces and the client build as well."""
