/**
 * The floor of free disk space (protocol §7). Below it the service stores nothing for clients
 * without an account, so that strangers cannot fill the disk that accounts and the operator need.
 * A reading serves all requests of some seconds: no request asks the file system.
 */
import { Effect } from "effect"
import { logFailure } from "../../runtime/index.ts"
import { diskCheckMs, diskShownMs } from "../limits.ts"

/** The space of a file system. */
export interface DiskSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

/** The least free space: a share of the file system in percent, or bytes. */
export type DiskFreeMin = { readonly percent: number } | { readonly bytes: number }

/** The bytes that must stay free on a file system of this size. */
export const floorBytes = (min: DiskFreeMin, { totalBytes }: DiskSpace): number =>
  "bytes" in min ? min.bytes : Math.ceil(totalBytes * min.percent / 100)

export class DiskFloor {
  private readonly min: DiskFreeMin
  private readonly read: () => Promise<DiskSpace>
  private last: { readonly freeBytes: number; readonly floorBytes: number } | undefined

  /** `read` asks the file system of the store. */
  constructor(min: DiskFreeMin, read: () => Promise<DiskSpace>) {
    this.min = min
    this.read = read
  }

  /** Whether the last reading was below the floor. */
  get isBelow(): boolean {
    return this.last !== undefined && this.last.freeBytes < this.last.floorBytes
  }

  /** The last reading and its floor in bytes; undefined before the first one. */
  get figures(): { readonly freeBytes: number; readonly floorBytes: number } | undefined {
    return this.last
  }

  /** Reads the space. After a failure the last reading stays. */
  readonly check: Effect.Effect<void> = Effect.suspend(() =>
    logFailure(
      Effect.map(Effect.tryPromise(() => this.read()), (space) => {
        this.last = { freeBytes: space.freeBytes, floorBytes: floorBytes(this.min, space) }
      }),
      "the free disk space cannot be read"
    )
  )

  /** Reads the space at intervals, for as long as the service runs; without a floor seldom. */
  readonly watch: Effect.Effect<never> = Effect.suspend(() => {
    const hasFloor = "percent" in this.min || this.min.bytes > 0
    const pause = Effect.sleep(hasFloor ? diskCheckMs : diskShownMs)
    return Effect.forever(Effect.andThen(pause, this.check))
  })
}
