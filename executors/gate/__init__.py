"""What bounds a run.

decisions   Allow | Deny | Ask | Halt
allowance   atomic reserve -> settle against finite caps
"""
