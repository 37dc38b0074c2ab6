"""Lowering: rewrite active expressions that need statements of their own."""
