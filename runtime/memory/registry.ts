/** The registry port within one process, for tests and for nodes that share it. */
import { Effect } from "effect"
import type { Later } from "../clock.ts"
import { type RegistryApi, type RegistryEntry, RegistryMoved } from "../ports/index.ts"

/** A new registry. Keys expire by the clock of `later`; changes are reported synchronously. */
export const makeMemoryRegistry = (later: Later): RegistryApi => {
  const entries = new Map<string, RegistryEntry>()
  const watchers = new Set<(entry: RegistryEntry) => void>()
  let revisions = 0

  const entryOf = (key: string): RegistryEntry =>
    entries.get(key) ?? { key, value: undefined, revision: 0 }

  const write = (key: string, value: string | undefined): number => {
    const entry = { key, value, revision: ++revisions }
    entries.set(key, entry)
    for (const watcher of [...watchers]) watcher(entry)
    return entry.revision
  }

  const expire = (key: string, revision: number): void => {
    const { revision: last, value } = entryOf(key)
    if (last === revision && value !== undefined) write(key, undefined)
  }

  const isCurrent = (key: string, expected: number): boolean => {
    const { revision, value } = entryOf(key)
    return revision === expected || (expected === 0 && value === undefined)
  }

  return {
    put: (key, value, expected, ttlMs) =>
      Effect.suspend(() => {
        if (!isCurrent(key, expected)) return Effect.fail(new RegistryMoved({ key, expected }))
        const revision = write(key, value)
        if (ttlMs !== undefined) later(ttlMs, () => expire(key, revision))
        return Effect.succeed(revision)
      }),
    remove: (key, expected) =>
      Effect.suspend(() => {
        if (!isCurrent(key, expected)) return Effect.fail(new RegistryMoved({ key, expected }))
        if (entryOf(key).value !== undefined) write(key, undefined)
        return Effect.void
      }),
    get: (key) => Effect.sync(() => entryOf(key)),
    watch: (onChange) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          // The same function may watch twice; each watch ends by itself.
          const own = (entry: RegistryEntry): void => onChange(entry)
          for (const entry of entries.values()) if (entry.value !== undefined) own(entry)
          watchers.add(own)
          return own
        }),
        (own) => Effect.sync(() => watchers.delete(own))
      ))
  }
}
