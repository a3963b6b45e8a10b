// Talks to the Realtime server that served this page.
import { Captions } from "./captions.js";
import { Sound, toBase64, fromBase64 } from "./sound.js";

const find = (id) => document.getElementById(id);
const talk = find("talk");
const sample = find("sample");
const captions = new Captions(find("captions"));

let socket = null;
let sound = null;
let speaking = false; // whether an answer plays
let cut = new Set(); // items whose sound was cut: what still arrives of them is not played
let lastSpeechAt = 0;

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
    onPlaying: (item) => {
      speaking = item !== null;
      if (socket) say(speaking ? "Speaking: interrupt it whenever you like." : "Listening.");
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
  if (socket) return Promise.resolve();
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
    opening.onclose = ({ code, reason }) => {
      const wasOpen = socket === opening;
      if (wasOpen) stop();
      if (code !== 1000 || reason) complain(`The connection ended: ${reason || "the server is not reachable"}.`);
      if (!wasOpen) reject(new Error(reason || "the server is not reachable"));
    };
  });
}

function stop() {
  const closing = socket;
  socket = null;
  closing?.close(1000);
  sound?.stopMicrophone();
  sound?.flush();
  talk.setAttribute("aria-pressed", "false");
  find("talk-label").textContent = "Talk";
  say("Press the button, and talk.");
}

const handlers = {
  "session.updated": () => say("Listening."),
  "input_audio_buffer.speech_started": ({ item_id }) => {
    if (speaking) sound.flush();
    captions.user(item_id).wait("…");
    say("Listening to you.");
  },
  "input_audio_buffer.speech_stopped": () => {
    lastSpeechAt = performance.now();
    say("Thinking…");
  },
  "conversation.item.input_audio_transcription.delta": ({ item_id, delta }) => captions.user(item_id).add(delta),
  "conversation.item.input_audio_transcription.completed": ({ item_id, transcript }) =>
    transcript ? captions.user(item_id).set(transcript) : captions.drop(item_id),
  "conversation.item.input_audio_transcription.failed": ({ error }) => complain(error.message),
  "response.output_audio_transcript.delta": ({ item_id, delta }) => captions.agent(item_id).add(delta),
  "response.output_text.delta": ({ item_id, delta }) => captions.agent(item_id).add(delta),
  "response.output_audio.delta": ({ item_id, delta }) => {
    if (cut.has(item_id)) return;
    if (lastSpeechAt) {
      captions.agent(item_id).note(`${((performance.now() - lastSpeechAt) / 1000).toFixed(2)} s after you stopped`);
      lastSpeechAt = 0;
    }
    sound.play(item_id, fromBase64(delta));
  },
  "conversation.item.truncated": ({ item_id }) => captions.agent(item_id).note("interrupted"),
  "response.done": ({ response }) => {
    if (response.status === "failed") complain(response.status_details?.error?.message ?? "The answer failed.");
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
