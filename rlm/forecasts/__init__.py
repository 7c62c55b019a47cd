"""What a count would take, without taking it.

Layout:

- `dry_run`: the front, `plan_count`
- `rehearsal`: what would be asked, window by window
- `forecast` `foresight`: what comes of it, and which bounds cannot suffice
"""
