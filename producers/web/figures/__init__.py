"""Figures as SVG, made on the server: charts and graphs."""
