// Microphone and speaker at the wire's 24 kHz, whatever the rate of the audio device.
const WIRE_HZ = 24000;
const FRAME = 480; // 20 ms

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.step = WIRE_HZ / sampleRate;
    this.phase = 0;
    this.sum = 0;
    this.count = 0;
    this.frame = new Int16Array(FRAME);
    this.filled = 0;
  }

  process([input]) {
    const samples = input[0];
    if (!samples) return true;
    for (const sample of samples) {
      // The mean of the samples that fall into one output sample: a box filter against aliasing.
      this.sum += sample;
      this.count += 1;
      this.phase += this.step;
      if (this.phase < 1) continue;
      this.phase -= 1;
      this.push(this.sum / this.count);
      this.sum = this.count = 0;
    }
    return true;
  }

  push(value) {
    this.frame[this.filled++] = Math.max(-1, Math.min(1, value)) * 32767;
    if (this.filled < FRAME) return;
    this.port.postMessage(this.frame.buffer, [this.frame.buffer]);
    this.frame = new Int16Array(FRAME);
    this.filled = 0;
  }
}

class Player extends AudioWorkletProcessor {
  constructor() {
    super();
    this.step = WIRE_HZ / sampleRate;
    this.queue = []; // {item, samples}
    this.at = 0; // position in the first of the queue, in wire samples
    this.heard = new Map(); // item -> wire samples that were played
    this.last = null;
    this.port.onmessage = ({ data }) => {
      if (data.samples) this.queue.push(data);
      else this.flush();
    };
  }

  flush() {
    const playing = this.queue[0];
    const item = playing?.item ?? null;
    const samples = (this.heard.get(item) ?? 0) + (playing ? this.at : 0);
    this.queue = [];
    this.at = 0;
    this.port.postMessage({ flushed: item, heardMs: Math.floor((samples / WIRE_HZ) * 1000) });
  }

  process(_, [output]) {
    const out = output[0];
    for (let i = 0; i < out.length; i++) out[i] = this.next();
    const playing = this.queue[0]?.item ?? null;
    if (playing !== this.last) {
      this.last = playing;
      this.port.postMessage({ playing });
    }
    return true;
  }

  next() {
    let first = this.queue[0];
    while (first && this.at >= first.samples.length) {
      this.at -= first.samples.length;
      this.heard.set(first.item, (this.heard.get(first.item) ?? 0) + first.samples.length);
      this.queue.shift();
      first = this.queue[0];
    }
    if (!first) {
      this.at = 0;
      return 0;
    }
    const index = Math.floor(this.at);
    const here = first.samples[index];
    const after = first.samples[index + 1] ?? this.queue[1]?.samples[0] ?? here;
    const value = here + (after - here) * (this.at - index);
    this.at += this.step;
    return value / 32768;
  }
}

registerProcessor("capture", Capture);
registerProcessor("player", Player);
