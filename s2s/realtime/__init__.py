"""The OpenAI Realtime protocol over sockets."""
