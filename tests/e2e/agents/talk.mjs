// One scenario of a voice agent over the SDK's stock WebSocket transport; prints what happened as one JSON object.
//   node talk.mjs SCENARIO WS_ADDRESS PCM_FILE        (24 kHz mono int16)
import { readFile } from "node:fs/promises";
import { RealtimeAgent, RealtimeSession, tool } from "@openai/agents/realtime";
import { z } from "zod";

const PIECE_BYTES = 4800; // 100 ms
const PATIENCE_MS = 90_000;
const LONG_STORY = "Tell me a very long story about a dragon, a sailor and a lighthouse, with many details.";
const [, , scenario, url, file] = process.argv;
const recording = await readFile(file);

// Counts and keeps what the session reports.
class Log {
  constructor(session) {
    this.types = [];
    this.errors = [];
    this.audio = [];
    this.interrupted = 0;
    this.waiting = [];
    session.on("transport_event", (event) => this.see(event));
    session.on("audio", ({ data }) => this.audio.push(Buffer.from(data)));
    session.on("audio_interrupted", () => (this.interrupted += 1));
    session.on("error", ({ error }) => this.errors.push(error));
  }

  see(event) {
    this.types.push(event.type);
    this.waiting = this.waiting.filter(({ wanted, resolve }) => !(wanted(event) && (resolve(event), true)));
  }

  until(type, wanted = () => true) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${type}; seen: ${this.types.join(" ")}`)), PATIENCE_MS);
      this.waiting.push({
        wanted: (event) => event.type === type && wanted(event),
        resolve: (event) => (clearTimeout(timer), resolve(event)),
      });
    });
  }
}

function say(session) {
  for (let at = 0; at < recording.length; at += PIECE_BYTES) {
    const piece = recording.subarray(at, at + PIECE_BYTES);
    session.sendAudio(piece.buffer.slice(piece.byteOffset, piece.byteOffset + piece.byteLength));
  }
}

const scenarios = {
  async voice(session, log) {
    const done = log.until("response.done");
    say(session);
    const { response } = await done;
    return { status: response.status, history: session.history };
  },

  async interruption(session, log) {
    const speaking = log.until("response.output_audio.delta");
    session.sendMessage(LONG_STORY);
    await speaking;
    const cut = log.until("response.done");
    const truncated = log.until("conversation.item.truncated");
    const answered = cut.then(() => log.until("response.output_audio.delta"));
    say(session);
    const { response } = await cut;
    const { audio_end_ms } = await truncated;
    await answered;
    return { status: response.status, reason: response.status_details.reason, audio_end_ms };
  },

  async tool(session, log) {
    const spoken = log.until("response.output_audio.done");
    session.sendMessage("Which number is drawn today?");
    await spoken;
    return { calls };
  },
};

const calls = [];
const draw = tool({
  name: "draw_number",
  description: "Draws the number of the day.",
  parameters: z.object({ highest: z.number().int() }),
  async execute({ highest }) {
    calls.push(highest);
    // Forced once; the next answer is to be spoken.
    session.transport.sendEvent({ type: "session.update", session: { type: "realtime", tool_choice: "none" } });
    return "The number is seven.";
  },
});

const agent = new RealtimeAgent({
  name: "assistant",
  instructions: "You are a helpful voice assistant. Answer in plain English, in one or two short sentences.",
  tools: scenario === "tool" ? [draw] : [],
});
const config = scenario === "tool" ? { toolChoice: "required" } : {};
const session = new RealtimeSession(agent, { transport: "websocket", tracingDisabled: true, config });
const log = new Log(session);
await session.connect({ apiKey: "none", url });
const result = await scenarios[scenario](session, log);
session.close();
const audio = Buffer.concat(log.audio).toString("base64");
const { types, errors, interrupted } = log;
const report = JSON.stringify({ ...result, types, errors, interrupted, audio });
process.stdout.write(report, () => process.exit(0));
