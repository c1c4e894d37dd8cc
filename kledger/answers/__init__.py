"""Shapes of the answers, each written once: types of the client and response models of the OpenAPI document."""
