/**
 * Whether commits of one message go each by itself or grouped. What is quicker depends on the
 * servers: with a flush for each write (`sync_interval: always`) groups are ten times quicker,
 * without it plain publishes are, on one server several times. So both are measured, by the
 * time that a commit takes: the slower one is tried again now and then, ever less often.
 */
import { paceSamples, paceWindows, paceWindowsMax } from "./limits.ts"

export type Manner = "plain" | "grouped"

/** The other manner must be so much quicker. */
const CLEARLY = 0.9

const other = (manner: Manner): Manner => manner === "plain" ? "grouped" : "plain"

export class BatchingChoice {
  manner: Manner = "plain"
  /** Mean time of a commit in each manner, when last measured. */
  private readonly meansMs: Record<Manner, number | undefined> = {
    plain: undefined,
    grouped: undefined
  }
  private samples = 0
  private sumMs = 0
  private windows = 0
  private windowsToTrial = paceWindows
  private onTrial = false

  /** A commit was written in this manner, and took so long. */
  took(manner: Manner, ms: number): void {
    if (manner !== this.manner) return
    this.sumMs += ms
    if (++this.samples < paceSamples) return
    this.meansMs[manner] = this.sumMs / this.samples
    this.samples = 0
    this.sumMs = 0
    this.decide()
  }

  private decide(): void {
    const mine = this.meansMs[this.manner] ?? 0
    const theirs = this.meansMs[other(this.manner)]
    if (this.onTrial) {
      this.onTrial = false
      if (theirs !== undefined && mine < CLEARLY * theirs) {
        this.windowsToTrial = paceWindows
      } else {
        this.manner = other(this.manner)
        this.windowsToTrial = Math.min(2 * this.windowsToTrial, paceWindowsMax)
      }
      this.windows = 0
    } else if (++this.windows >= this.windowsToTrial) {
      this.onTrial = true
      this.manner = other(this.manner)
    }
  }
}
