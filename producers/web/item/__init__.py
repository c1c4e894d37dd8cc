"""What the page of one item shows: its past, its versions, its lineage, and the form that revises it."""
