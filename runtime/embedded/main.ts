/** The store of a single node on a disk, for definitions of actors. */
import { Layer } from "effect"
import { singleNodePlacement, type Store } from "../index.ts"
import { embedded as embeddedPorts, type EmbeddedOptions } from "./index.ts"

/** Commits of one group: enough to share a flush, and few enough to overlap on a busy node. */
const groupCommitsMax = 64

/**
 * Actors in a folder, created when missing, on RocksDB or LevelDB, whichever is installed. One node
 * at a time opens it. A commit is durable when the disk has it.
 */
export const embedded = (
  folder: string,
  { engine }: Pick<EmbeddedOptions, "engine"> = {}
): Store => ({
  name: folder,
  ports: Layer.merge(embeddedPorts(folder, { engine }), singleNodePlacement),
  limits: { groupCommitsMax }
})
