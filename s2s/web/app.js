// Talks to the Realtime server that served this page.
import { Captions } from "./captions.js";
import { Sound, toBase64, fromBase64 } from "./sound.js";

const find = (id) => document.getElementById(id);
const talk = find("talk");
const sample = find("sample");
const captions = new Captions(find("captions"));

let socket = null; // open, with a session
let connecting = null; // the promise of one
let sound = null;
let speaking = false; // whether an answer plays
let hearing = false; // whether the person speaks
let silenceMs = 0; // of the end of a turn, before the server takes it for one
let lastWordAt = 0;
const cut = new Set(); // items whose sound was cut: what still arrives of them is not played

function say(text) {
  find("state").textContent = text;
}

function complain(text) {
  find("error").textContent = text ?? "";
  find("error").hidden = !text;
}

function send(event) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(event));
}

async function getSound() {
  sound ??= await Sound.open({
    onFrame: (frame) => send({ type: "input_audio_buffer.append", audio: toBase64(frame) }),
    onLevel: (level) => talk.style.setProperty("--level", level),
    onVoice: (level) => find("voice").style.setProperty("--voice", level),
    onPlaying: (item) => {
      const over = speaking && !hearing && item === null;
      speaking = item !== null;
      if (socket && (speaking || over)) say(speaking ? "Speaking: interrupt it whenever you like." : "Listening.");
    },
    onFlushed: (item, heardMs) => {
      if (!item) return;
      cut.add(item);
      send({ type: "conversation.item.truncate", item_id: item, content_index: 0, audio_end_ms: heardMs });
    },
  });
  await sound.resume();
  return sound;
}

function connect() {
  connecting ??= open().catch((error) => {
    connecting = null;
    throw error;
  });
  return connecting;
}

function open() {
  complain(null);
  say("Connecting…");
  const key = sessionStorage.getItem("s2s-key");
  const protocols = ["realtime", ...(key ? [`openai-insecure-api-key.${key}`] : [])];
  const address = new URL("v1/realtime?model=local", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const opening = new WebSocket(address, protocols);
  return new Promise((resolve, reject) => {
    opening.onmessage = ({ data }) => {
      const event = JSON.parse(data);
      if (event.type === "session.created") {
        socket = opening;
        const input = { transcription: { model: "default" } };
        send({ type: "session.update", session: { type: "realtime", audio: { input } } });
        resolve();
      }
      handle(event);
    };
    opening.onclose = ({ reason }) => {
      const words = reason.replace(/\.$/, "") || "the server does not answer";
      if (socket === opening) {
        stop();
        complain(`The connection ended: ${words}.`);
      }
      reject(new Error(words));
    };
  });
}

function stop() {
  const closing = socket;
  socket = connecting = null;
  hearing = false;
  closing?.close(1000);
  sound?.stopMicrophone();
  sound?.flush();
  talk.setAttribute("aria-pressed", "false");
  find("talk-label").textContent = "Talk";
  say("Press the button, and talk.");
}

const handlers = {
  "session.updated": ({ session }) => {
    silenceMs = session.audio.input.turn_detection?.silence_duration_ms ?? 0;
    say("Listening.");
  },
  "input_audio_buffer.speech_started": ({ item_id }) => {
    hearing = true;
    if (speaking) sound.flush();
    captions.user(item_id).wait("…");
    say("Listening to you.");
  },
  "input_audio_buffer.speech_stopped": () => {
    hearing = false;
    lastWordAt = performance.now() - silenceMs;
    say("Thinking…");
  },
  "conversation.item.input_audio_transcription.delta": ({ item_id, delta }) => captions.user(item_id).add(delta),
  "conversation.item.input_audio_transcription.completed": ({ item_id, transcript }) => {
    if (transcript) return captions.user(item_id).set(transcript);
    captions.drop(item_id);
    say("Listening.");
  },
  "conversation.item.input_audio_transcription.failed": ({ error }) => complain(error.message),
  "response.output_audio_transcript.delta": ({ item_id, delta }) => captions.agent(item_id).add(delta),
  "response.output_text.delta": ({ item_id, delta }) => captions.agent(item_id).add(delta),
  "response.output_audio.delta": ({ item_id, delta }) => {
    if (cut.has(item_id)) return;
    if (lastWordAt) {
      captions.agent(item_id).note(`${((performance.now() - lastWordAt) / 1000).toFixed(1)} s after your last word`);
      lastWordAt = 0;
    }
    sound.play(item_id, fromBase64(delta));
  },
  "conversation.item.truncated": ({ item_id }) => captions.agent(item_id).note("interrupted"),
  "response.done": ({ response }) => {
    if (response.status === "cancelled") // between two clauses no sound is cut
      for (const { id } of response.output) captions.known(id)?.note("interrupted");
    if (response.status !== "failed") return;
    complain(response.status_details?.error?.message ?? "The answer failed.");
    say("Listening.");
  },
  error: ({ error }) => {
    complain(error.message);
    find("key").hidden = error.code !== "invalid_api_key";
  },
};

function handle(event) {
  handlers[event.type]?.(event);
}

async function toggleTalk() {
  if (talk.getAttribute("aria-pressed") === "true") return stop();
  try {
    const speakers = await getSound();
    await connect();
    await speakers.startMicrophone();
    talk.setAttribute("aria-pressed", "true");
    find("talk-label").textContent = "Stop";
  } catch (error) {
    stop();
    complain(inWords(error));
  }
}

async function askSample() {
  sample.disabled = true;
  try {
    const speakers = await getSound();
    await connect();
    const response = await fetch("sample.wav");
    if (!response.ok) throw new Error("this server has no sample question");
    say("Asking the sample question…");
    await speakers.sayFile(await response.arrayBuffer());
  } catch (error) {
    if (!socket) stop();
    complain(inWords(error));
  } finally {
    sample.disabled = false;
  }
}

function inWords(error) {
  const words = {
    NotAllowedError: "The browser may not use the microphone: allow it for this page, or ask the sample question.",
    NotFoundError: "No microphone was found: plug one in, or ask the sample question.",
    NotReadableError: "The microphone is in use by another program.",
  };
  return words[error.name] ?? `That did not work: ${error.message}.`;
}

talk.addEventListener("click", toggleTalk);
sample.addEventListener("click", askSample);
find("key").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("s2s-key", find("key-value").value);
  find("key").hidden = true;
  complain(null);
});
