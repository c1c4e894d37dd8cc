"""Commands of recall: what answers now, and what was served before."""
