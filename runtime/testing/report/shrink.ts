/** Shrinks a failing plan: removes parts as long as the plan still fails. */

/** The parts of a plan that can be removed. */
export interface ShrinkablePlan {
  readonly faults: ReadonlyArray<unknown>
  readonly operations: ReadonlyArray<unknown>
  /** Numbers only; a kind of noise is removed when its number is 0. */
  readonly noise: object
}

export interface ShrinkOptions<Plan> {
  /** Whether a plan fails. */
  readonly fails: (plan: Plan) => Promise<boolean>
  /** Another plan to try first in each round; undefined where there is none. */
  readonly simplify?: ((plan: Plan) => Plan | undefined) | undefined
}

/** Removes as many elements as possible: first halves, then smaller parts. */
const fewest = async <A>(
  all: ReadonlyArray<A>,
  fails: (some: ReadonlyArray<A>) => Promise<boolean>
): Promise<void> => {
  let left = all
  for (let size = Math.ceil(left.length / 2); size >= 1;) {
    let isSmaller = false
    for (let at = 0; at < left.length;) {
      const some = left.toSpliced(at, size)
      if (await fails(some)) {
        left = some
        isSmaller = true
      } else at += size
    }
    if (size === 1 && !isSmaller) break
    size = size === 1 ? 1 : Math.ceil(size / 2)
  }
}

/** One removal may make another one possible. */
const roundsMax = 2

/** The smallest plan found that still fails. */
export const shrunk = async <Plan extends ShrinkablePlan>(
  plan: Plan,
  { fails, simplify }: ShrinkOptions<Plan>
): Promise<Plan> => {
  let least = plan
  /** Tries the least plan with other parts, which have the types of the plan's own. */
  const smaller = async (parts: Partial<ShrinkablePlan>): Promise<boolean> => {
    const other: Plan = { ...least, ...parts }
    if (!await fails(other)) return false
    least = other
    return true
  }
  for (let round = 0; round < roundsMax; round++) {
    const { faults, noise, operations } = least
    await smaller({ faults: [] })
    const simpler = simplify?.(least)
    if (simpler !== undefined) await smaller(simpler)
    if (least.faults.length > 0) await fewest(faults, (some) => smaller({ faults: some }))
    for (const kind of Object.keys(noise)) {
      const isThere = Object.entries(least.noise).some(([name, value]) =>
        name === kind && value > 0
      )
      if (isThere) await smaller({ noise: { ...least.noise, [kind]: 0 } })
    }
    await fewest(operations, (some) => smaller({ operations: some }))
  }
  return least
}
