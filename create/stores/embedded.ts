/** Where the actors are kept: in a folder, which one node at a time opens. */
import type { Store } from "@restante/runtime"
import { embedded } from "@restante/runtime/embedded"

export const openStore = (): Store => embedded(process.env["DATA_DIR"] ?? "data")
