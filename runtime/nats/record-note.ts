/** How far a view has got, as it is noted in it; and whether it can go on from there. Pure. */
import { recordSilenceMs } from "./limits.ts"

/** Version of the view's keys and values; another one is not read. */
const VERSION = 1

/** Times are ms since the epoch, of the servers' clocks. */
export interface ViewProgress {
  /** When the stream was made. */
  readonly created: string
  /** The last message that was taken in, and when it was written. */
  readonly seq: number
  readonly writtenMs: number
  /** When the view was last known to hold all that there was. */
  readonly knownMs: number
}

/** What the leader says of the stream. */
export interface StreamStatus {
  readonly created: string
  readonly firstSeq: number
  readonly lastSeq: number
  readonly nowMs: number
  /** When the message of the note's sequence was written; undefined when it is there no more. */
  readonly writtenMs: number | undefined
}

export const writeNote = (note: ViewProgress): string =>
  JSON.stringify({ version: VERSION, ...note })

/** undefined: there is none, or not of this version. */
export const readNote = (text: string | undefined): ViewProgress | undefined => {
  try {
    // This node's own text, unless it is damaged: then its fields do not fit.
    const { version, ...note } = JSON.parse(text ?? "{}") as ViewProgress & {
      readonly version: number
    }
    const numbers = [note.seq, note.writtenMs, note.knownMs]
    return version === VERSION && numbers.every(Number.isFinite) ? note : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether what comes after the note's sequence is all that the view lacks. Not of another stream,
 * nor of one that has lost its end and goes on otherwise; not where nothing is left of what the
 * view holds; and not after so long that marks of deleted keys may have ended.
 */
export const goesOn = (note: ViewProgress, standing: StreamStatus): boolean =>
  note.created === standing.created &&
  note.seq <= standing.lastSeq &&
  (note.seq === 0 || note.seq >= standing.firstSeq) &&
  (standing.writtenMs === undefined || standing.writtenMs === note.writtenMs) &&
  standing.nowMs - note.knownMs <= recordSilenceMs
