/** Counters of this runtime, in memory or in a folder. */
import { embedded } from "../../../runtime/embedded/main.ts"
import { memory, startNode } from "../../../runtime/main.ts"
import { counter } from "../../runtime/definition/examples/counter.ts"
import type { Counters } from "./counters.ts"

/** `folder`: undefined for counters in memory. */
export const ownCounters = async (folder?: string): Promise<Counters> => {
  const store = folder === undefined ? memory() : embedded(folder)
  const node = await startNode({ actors: [counter], store })
  return {
    add: (id) => node.ask(counter(id), { _tag: "Add", by: 1 }),
    stop: () => node.stop()
  }
}
