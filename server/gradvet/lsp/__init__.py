"""The language server: the only room that speaks the Language Server Protocol."""
