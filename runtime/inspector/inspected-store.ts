/** A store whose commits the inspector sees. */
import { Layer } from "effect"
import type { Store } from "../definition/index.ts"
import { observedStorageLayer, type OnCommit } from "../recording/index.ts"

/** The store, with a storage that is observed. */
export const observedStore = (store: Store, onCommit: OnCommit): Store => ({
  ...store,
  ports: Layer.provideMerge(observedStorageLayer(onCommit), store.ports)
})
