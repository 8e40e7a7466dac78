/** Where the actors are kept: in the memory of this process, until it ends. */
import { memory, type Store } from "@restante/runtime"

export const openStore = (): Store => memory()
