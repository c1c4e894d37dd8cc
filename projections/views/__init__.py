"""The views, a folder each: tables, fold, rules, and the questions that they answer."""
