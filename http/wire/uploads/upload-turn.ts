/**
 * What one upload brings in one turn of the event loop. While its client sends faster than the
 * service takes the bytes, the native server reads on, and all other clients wait.
 */
import { uploadTurnBytesMax, uploadTurnMs } from "../../limits.ts"

export interface TurnLimits {
  readonly bytesMax: number
  readonly ms: number
}

const defaultLimits: TurnLimits = { bytesMax: uploadTurnBytesMax, ms: uploadTurnMs }

export class UploadTurn {
  private readonly limits: TurnLimits
  private sinceMs = 0
  private turnBytes = 0

  constructor(limits: TurnLimits = defaultLimits) {
    this.limits = limits
  }

  /** What it has brought in this turn. */
  get bytes(): number {
    return this.turnBytes
  }

  /** Counts further bytes; whether the turn must end, because of their number and their time. */
  isOver(bytes: number): boolean {
    if (bytes === 0) return false
    if (this.turnBytes === 0) {
      this.sinceMs = performance.now()
      setImmediate(() => {
        this.turnBytes = 0
      })
    }
    this.turnBytes += bytes
    const { bytesMax, ms } = this.limits
    return this.turnBytes > bytesMax && performance.now() - this.sinceMs >= ms
  }
}
