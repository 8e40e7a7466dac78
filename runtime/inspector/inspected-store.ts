/** A store whose commits the inspector sees. */
import { Layer } from "effect"
import type { Store } from "../definition/index.ts"
import type { Commit } from "../ports/index.ts"
import { observedStorageLayer } from "../recording/index.ts"

/** The store, with a storage that is observed. */
export const observedStore = (store: Store, onCommit: (commit: Commit) => void): Store => ({
  ...store,
  ports: Layer.provideMerge(observedStorageLayer(onCommit), store.ports)
})
