/** What an activation needs of the node around it. */
import type { Activation } from "./activation.ts"
import type { Address } from "./address.ts"
import type { Committer } from "./committer.ts"
import type { Timekeeping } from "./deadline.ts"
import type { Effects } from "./effects.ts"
import type { Quarantined } from "./errors.ts"
import type { CrossActorTimers } from "./foreign.ts"
import type { Limits } from "./limits.ts"
import type { StorageApi } from "./ports/storage.ts"
import type { TimerService } from "./timers.ts"

/** The steps of a message's life at which a test may end the process. */
export type MessageStep = "decided" | "committed" | "replied" | "performed"

export interface ActivationContext extends Timekeeping {
  readonly limits: Limits
  readonly storage: StorageApi
  readonly committer: Committer
  readonly effects: Effects
  readonly timers: TimerService
  readonly foreign: CrossActorTimers
  readonly nowMs: () => number
  /** Logs a defect that is not the actor's, or finds it down already. */
  readonly onFault: (address: Address, cause: unknown) => void
  /** Logs a defect of the actor: how long to wait before its restart, in ms, or that it rests. */
  readonly onDefect: (address: Address, cause: unknown) => number | Quarantined
  readonly onChange: (address: Address, head: number) => void
  /** The activation has ended by itself and takes no more messages. */
  readonly onEnd: (actor: Activation) => void
  readonly step: ((step: MessageStep, address: Address) => void) | undefined
}
