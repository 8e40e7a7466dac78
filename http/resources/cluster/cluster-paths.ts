/** The paths of the resources below `/cluster`. */
import type { Address } from "../../../runtime/index.ts"

export const clusterPath = "/cluster"

export const historyPath = `${clusterPath}/history`

/** The actors of a kind. */
export const actorsPath = (kind: string): string => `${clusterPath}/actors/${kind}`

/** One actor. */
export const actorPath = ({ id, kind }: Address): string => `${actorsPath(kind)}/${id}`

/** The quarantine of an actor. */
export const quarantinePath = ({ id, kind }: Address): string =>
  `${clusterPath}/quarantine/${kind}/${id}`
