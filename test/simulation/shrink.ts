/** Shrinks a failing plan: removes parts as long as the plan still fails. */
import { type Noise, type Plan, quiet } from "./plan.ts"

/** Whether a plan fails. */
export type Fails = (plan: Plan) => Promise<boolean>

/** Removes as many elements as possible: first halves, then smaller parts. */
const fewest = async <A>(
  all: ReadonlyArray<A>,
  fails: (some: ReadonlyArray<A>) => Promise<boolean>
): Promise<ReadonlyArray<A>> => {
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
  return left
}

/** The smallest plan found that still fails. */
export const shrunk = async (plan: Plan, fails: Fails): Promise<Plan> => {
  let least = plan
  const smaller = async (other: Plan): Promise<boolean> => {
    if (!await fails(other)) return false
    least = other
    return true
  }
  // One removal may make another one possible, so this runs twice.
  for (let round = 0; round < 2; round++) {
    const { faults, noise, operations } = least
    await smaller({ ...least, faults: [] })
    if (least.waiting > 0) await smaller({ ...least, waiting: 0 })
    if (least.faults.length > 0) {
      await fewest(faults, (some) => smaller({ ...least, faults: some }))
    }
    for (const kind in noise) {
      // The key comes from the noise itself.
      const name = kind as keyof Noise
      if (least.noise[name] > 0) {
        await smaller({ ...least, noise: { ...least.noise, [name]: quiet[name] } })
      }
    }
    await fewest(operations, (some) => smaller({ ...least, operations: some }))
  }
  return least
}
