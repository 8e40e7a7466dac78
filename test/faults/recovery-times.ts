/** Time limits until a cluster serves again; they exceed the promises, for busy machines. */
/** 20 s are promised after a node's death, of which 13 s are the lease of its membership. */
export const nodeServedWithinMs = 120_000

/** 10 s are promised after the death of a NATS leader. */
export const serverServedWithinMs = 120_000

/** Limit after any other fault has ended. */
export const recoveredWithinMs = 120_000

/** Prints a measured time. */
export const printRecoveryTime = (what: string, ms: number): void => {
  console.info(`${what}: served again after ${ms} ms`)
}
