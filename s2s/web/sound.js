// The microphone and the speakers of this page.
const WIRE_HZ = 24000;
const FRAME = 480; // 20 ms
const SILENCE_AFTER_SAMPLE_MS = 2000;
const WORKLETS = new URL("./worklets.js", import.meta.url);

export function toBase64(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer)));
}

export function fromBase64(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return new Int16Array(bytes.buffer);
}

export class Sound {
  static async open(callbacks) {
    const context = new AudioContext({ sampleRate: WIRE_HZ, latencyHint: "interactive" });
    await context.audioWorklet.addModule(WORKLETS);
    return new Sound(context, callbacks);
  }

  constructor(context, callbacks) {
    this.context = context;
    this.callbacks = callbacks;
    this.muted = false; // while a sample is said, the microphone is not
    this.player = new AudioWorkletNode(context, "player", { numberOfInputs: 0, outputChannelCount: [1] });
    this.voice = new AnalyserNode(context, { fftSize: 1024 });
    this.player.connect(this.voice).connect(context.destination);
    this.player.port.onmessage = ({ data }) => {
      if ("flushed" in data) callbacks.onFlushed(data.flushed, data.heardMs);
      else this.onPlaying(data.playing);
    };
  }

  onPlaying(item) {
    this.playing = item;
    this.callbacks.onPlaying(item);
    if (item) this.showVoice();
  }

  // The level of what is heard now, at every frame while there is something.
  showVoice() {
    const samples = new Float32Array(this.voice.fftSize);
    this.voice.getFloatTimeDomainData(samples);
    this.callbacks.onVoice(this.playing ? level(samples) : 0);
    if (this.playing) requestAnimationFrame(() => this.showVoice());
  }

  resume() {
    return this.context.resume();
  }

  play(item, samples) {
    this.player.port.postMessage({ item, samples });
  }

  flush() {
    this.player.port.postMessage({});
  }

  async startMicrophone() {
    const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    this.stream = await navigator.mediaDevices.getUserMedia({ audio });
    this.source = await this.sourceOf(this.stream);
    this.capture = new AudioWorkletNode(this.source.context, "capture", { numberOfOutputs: 0 });
    this.capture.port.onmessage = ({ data }) => {
      if (!this.muted) this.callbacks.onFrame(data);
      this.callbacks.onLevel(level(Float32Array.from(new Int16Array(data), (sample) => sample / 32768)));
    };
    this.source.connect(this.capture);
  }

  // Some browsers take a microphone only at its own rate; the worklet converts it.
  async sourceOf(stream) {
    try {
      return this.context.createMediaStreamSource(stream);
    } catch (error) {
      if (error.name !== "NotSupportedError") throw error;
    }
    const context = new AudioContext({ latencyHint: "interactive" });
    await context.audioWorklet.addModule(WORKLETS);
    return context.createMediaStreamSource(stream);
  }

  stopMicrophone() {
    this.stream?.getTracks().forEach((track) => track.stop());
    this.source?.disconnect();
    this.capture?.port.close();
    if (this.source && this.source.context !== this.context) this.source.context.close();
    this.stream = this.source = this.capture = null;
    this.callbacks.onLevel(0);
  }

  // Say a recording in real time, as a microphone would, and let it be heard.
  async sayFile(data) {
    const recording = await this.context.decodeAudioData(data);
    const player = new AudioBufferSourceNode(this.context, { buffer: recording });
    player.connect(this.context.destination);
    const samples = await atWireRate(recording);
    player.start();
    try {
      await this.sayFrames(samples);
    } finally {
      this.muted = false;
    }
  }

  // The silence behind it is the microphone's own, where there is one.
  async sayFrames(samples) {
    const silence = (SILENCE_AFTER_SAMPLE_MS / 1000) * WIRE_HZ;
    const start = performance.now();
    for (let at = 0; at < samples.length + silence; at += FRAME) {
      this.muted = at < samples.length;
      if (this.capture && !this.muted) return;
      const frame = new Int16Array(FRAME);
      frame.set(samples.subarray(at, at + FRAME));
      const due = start + (at / WIRE_HZ) * 1000;
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
      this.callbacks.onFrame(frame.buffer);
    }
  }
}

async function atWireRate(recording) {
  const length = Math.ceil(recording.duration * WIRE_HZ);
  const offline = new OfflineAudioContext(1, length, WIRE_HZ);
  const source = new AudioBufferSourceNode(offline, { buffer: recording });
  source.connect(offline.destination);
  source.start();
  const rendered = await offline.startRendering();
  return Int16Array.from(rendered.getChannelData(0), (value) => Math.max(-1, Math.min(1, value)) * 32767);
}

// Loudness of samples from -1 to 1, as 0 (-60 dB and below) to 1 (-10 dB).
function level(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  const decibels = 20 * Math.log10(Math.sqrt(sum / samples.length) + 1e-6);
  return Math.max(0, Math.min(1, (decibels + 60) / 50));
}
