/** Temporary folders for stores, and running effects on the store of one. */
import { Effect, Exit } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { writeEngine } from "../../../runtime/embedded/engine/engine-choice.ts"
import { embedded, type EngineName } from "../../../runtime/embedded/index.ts"
import type { Blobs } from "../../../runtime/ports/blobs.ts"
import type { Records } from "../../../runtime/ports/records.ts"
import type { Storage } from "../../../runtime/ports/storage.ts"

/** An empty folder; `engine` chooses the database of its store. */
export const newFolder = async (engine?: EngineName): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "restante-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  if (engine !== undefined) writeEngine(folder, engine)
  return folder
}

type Services = Storage | Records | Blobs

/** Runs an effect on the store of a folder, which is open meanwhile. */
export const withStore = <A, E>(
  folder: string,
  effect: Effect.Effect<A, E, Services>,
  engine?: EngineName
): Promise<A> => Effect.runPromise(Effect.provide(effect, embedded(folder, { engine })))

/** The failure of opening the store; undefined when it opens. */
export const openingFailure = async (folder: string, engine?: EngineName): Promise<unknown> => {
  const opening = Effect.provide(Effect.void, embedded(folder, { engine }))
  const exit = await Effect.runPromiseExit(opening)
  if (Exit.isSuccess(exit)) return undefined
  const [reason] = exit.cause.reasons
  return reason?._tag === "Fail" ? reason.error : reason
}
