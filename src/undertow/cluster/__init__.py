"""A pool of workers: who runs what, who is alive, what is tried again. Knows nothing of plans, and nothing of Ray.

In processing order: `frames` (what is sent), `channel` (in order, and once, over a network that loses things), `roster`
(who is alive), `dispatch` (who runs what), `driver` and `worker` (the two ends, as states and events: no clock, no
socket, no thread), `station` (what drives them, as protocols), `pool`, `links` and `member` (the two ends as others use
them), `sockets` (ZeroMQ), `gate` (who may connect) and `pieces` (large parts), `tracks` (who was at what, and when),
`probe` (how far away workers are), `process` (workers that are processes of this machine; `__main__` is theirs),
`local` (a pool of these), `pipe` (bytes between any two of these processes), `wires` (sockets between parts of a
graph). Servers start processes for others: `jobs` (which there are), `shared_key` (who may use them), `notes` (what is
said), `server` and `servers` (the two ends), `server_sockets`.
"""
