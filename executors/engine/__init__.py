"""What runs the work.

local   workers of this process that pull from a lazy source
"""
