/** How soon a cluster serves again: what is promised, and more than that for busy machines. */

/** After a node's death 20 s are promised, its membership lasts 13 s of them. */
export const nodeServedWithinMs = 120_000
/** After the death of a leader of NATS 10 s are promised. */
export const serverServedWithinMs = 90_000
/** After whatever else was broken is whole again. */
export const healedWithinMs = 120_000

/** Tells what was measured, since nothing else does. */
export const told = (what: string, ms: number): void => {
  console.info(`${what}: served again after ${ms} ms`)
}
