/** Older versions of an actor's states, and the ways between a version and the next. */
import type { Tagged } from "../actor/index.ts"
import type { Shape, ShapeValue } from "./shapes.ts"

/** A version of the states that is no longer the newest. */
export interface Migration {
  /** The states of this version. */
  readonly state: Shape
  /** Makes a state of the next version. */
  readonly up: (state: object) => Tagged
  /** Makes a state of this version: for as long as the definition `writes` it or an older one. */
  readonly down: ((state: object) => Tagged) | undefined
}

/**
 * An older version of the states. `up` makes a state of the next version of one of this version;
 * the result is checked by the next version's Schema. `down` is the way back. A program needs it
 * while programs run that read only the older version: see `writes` of a definition.
 */
export const migration = <const S extends Shape, const Older extends ShapeValue<S>>(
  state: S,
  up: (older: ShapeValue<S>) => Tagged,
  down?: (newer: never) => Older
): Migration => ({
  state,
  // Each is called with states of the version that it takes, which the Schemas check.
  up: up as Migration["up"],
  down: down as Migration["down"]
})
