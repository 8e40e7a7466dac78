/** The trace of a run, line by line, and a digest of all lines. */
import type { VirtualTime } from "./virtual-time.ts"

/** A text, or what makes it. */
type Text = string | (() => string)

export class Trace {
  readonly lines: Array<string> = []
  private digest = 0x811c9dc5
  private readonly time: VirtualTime
  private readonly keeps: boolean

  /** Lines are stored only if they will be shown. */
  constructor(time: VirtualTime, keeps: boolean) {
    this.time = time
    this.keeps = keeps
  }

  /** A costly text is made only if it is stored. */
  note(what: string, text: Text): void {
    this.mix(Math.round(this.time.nowMs * 1_000))
    for (let at = 0; at < what.length; at++) this.mix(what.charCodeAt(at))
    if (typeof text === "string") {
      for (let at = 0; at < text.length; at++) this.mix(text.charCodeAt(at))
    }
    if (!this.keeps) return
    const reported = typeof text === "string" ? text : text()
    this.lines.push(`${(this.time.nowMs / 1_000).toFixed(4).padStart(10)} ${what} ${reported}`)
  }

  /** Equal for equal sequences of events. */
  get hash(): string {
    return (this.digest >>> 0).toString(16).padStart(8, "0")
  }

  private mix(value: number): void {
    this.digest = Math.imul(this.digest ^ value, 0x01000193)
    this.digest ^= this.digest >>> 15
  }
}
