"""The conversation core, Sans-I/O: no sockets, no Ray, no clock of its own.

`session.Session` takes client events, results of the stages and the time, and returns effects for its driver
(`effects`).  Behind it:

- what comes in: `listener` (buffer, commits) with `vad_feed`, `turn_taking` (one person's turns) with the
  endpointing strategies of `turns/` and `barge_in`, `transcripts`;
- what goes out: `answers` (which response is active) with `response`, `plan`, `output_items`, `voice`, `gate` (holds
  back an early answer), `output_buffer` and `playback` (what was heard); text by `visible`, `clauses`, `speakable`;
- what lasts: `conversation`, `spoken`, `history` (the prompt), `settings`, `timeline`;
- every request and event leaves by `outbox`, which also knows what is late or cancelled.
"""
