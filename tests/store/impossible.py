"""What no record may hold, whatever wrote it: each is a statement that has to be refused."""

IMPOSSIBLE = {
    "an end without its time": "UPDATE task SET state = 'succeeded' WHERE id = 'bg_r'",
    "a time of the end without an end": "UPDATE task SET finished_at = 1 WHERE id = 'bg_r'",
    "a failure without its kind": "UPDATE task SET error_kind = NULL, error_message = NULL "
    "WHERE id = 'bg_f'",
    "an error without a failure": "UPDATE task SET error_kind = 'exit', error_message = 'x' "
    "WHERE id = 'bg_s'",
    "an error without its text": "UPDATE task SET error_message = NULL WHERE id = 'bg_f'",
    "an exit code of a stopped task": "UPDATE task SET exit_code = 1 WHERE id = 'bg_c'",
    "a running task without a place": "UPDATE task SET boot_id = NULL WHERE id = 'bg_r'",
    "leftovers of what still runs": "UPDATE task SET leftovers = 1 WHERE id = 'bg_r'",
    "fewer than no leftovers": "UPDATE task SET leftovers = -1 WHERE id = 'bg_s'",
    "an attempt before the first": "UPDATE task SET attempt = 0 WHERE id = 'bg_q'",
    "an unknown state": "UPDATE task SET state = 'paused' WHERE id = 'bg_q'",
    "an unknown kind": "UPDATE task SET kind = 'magic' WHERE id = 'bg_q'",
    "an unknown sort of error": "UPDATE task SET error_kind = 'bad luck' WHERE id = 'bg_f'",
    "two tasks of one id": "UPDATE task SET id = 'bg_q' WHERE id = 'bg_r'",
    "a text for a number": "UPDATE task SET pid = 'many' WHERE id = 'bg_r'",
    "an event twice": "UPDATE event SET number = 1 WHERE number = 2",
    "an event of no task": "UPDATE event SET task = 999",
    "a second signal for one end": "INSERT INTO signal (key, task, owner, session, kind, text, "
    "data, state, channel, created_at) SELECT key, task, owner, session, kind, text, data, state, "
    "channel, created_at FROM signal WHERE key = 'bg_f:end'",
    "a delivery without its time": "UPDATE signal SET state = 'delivered'",
    "a claim without a consumer": "UPDATE signal SET state = 'claimed'",
    "a consumer without a claim": "UPDATE signal SET consumer = 'c'",
    "a drop without a reason": "UPDATE signal SET state = 'dropped'",
    "an unknown sort of signal": "UPDATE signal SET kind = 'surprise'",
    "a channel that is called as the inbox": "INSERT INTO channel (owner, name, kind, target) "
    "VALUES ('ada', 'inbox', 'command', 'cat')",
    "an unknown sort of channel": "INSERT INTO channel (owner, name, kind, target) "
    "VALUES ('ada', 'x', 'pigeon', 'home')",
    "a webhook that signs with nothing": "INSERT INTO channel (owner, name, kind, target) "
    "VALUES ('ada', 'x', 'webhook', 'https://x')",
    "a key for what signs nothing": "INSERT INTO channel (owner, name, kind, target, secret) "
    "VALUES ('ada', 'x', 'command', 'cat', 'file')",
}
