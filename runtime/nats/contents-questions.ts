/** How actors are put together in questions when all of the store is read. */
import type { Address } from "../address.ts"
import { contentsKeys } from "./limits.ts"

/** An actor to be read, with what its record told. */
export interface Wanted {
  readonly address: Address
  readonly head: number
}

/** Groups of which none asks for more keys than one question may. */
export const questions = (wanted: ReadonlyArray<Wanted>, beyond: number) => {
  const groups: Array<Array<Wanted>> = []
  let keys = Infinity
  for (const one of wanted) {
    const more = 2 + one.head + beyond
    keys += more
    if (keys > contentsKeys) {
      groups.push([])
      keys = more
    }
    groups.at(-1)?.push(one)
  }
  return groups
}
