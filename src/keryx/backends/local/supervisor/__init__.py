"""The supervisor: a detached process that runs one background process and records its end.

The package uses the standard library only and imports itself relatively, because ``start_supervisor`` runs it without
Keryx. So the supervisor starts fast, stays small and outlives the process that started it.
"""
