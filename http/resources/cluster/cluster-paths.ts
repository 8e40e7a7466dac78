/** The paths of the resources below `/cluster`. */
import type { Address } from "../../../runtime/index.ts"

export const clusterPath = "/cluster"

export const historyPath = `${clusterPath}/history`

/** The recorded messages of the answering node; those to one kind. */
export const messagesPath = (kind?: string): string =>
  `${clusterPath}/messages${kind === undefined ? "" : `?kind=${kind}`}`

/** The actors of a kind. */
export const actorsPath = (kind: string): string => `${clusterPath}/actors/${kind}`

/** One actor. */
export const actorPath = ({ id, kind }: Address): string => `${actorsPath(kind)}/${id}`

/** An actor with its state after a recorded commit, which {@link commitName} names. */
export const pastPath = (of: Address, commit: string): string =>
  `${actorPath(of)}?commit=${encodeURIComponent(commit)}`

/** `<node>.<start of the node>.<number>`: the numbers of nodes and starts are not alike. */
export const commitName = (startId: string, n: number): string => `${startId}.${n}`

/** The quarantine of an actor. */
export const quarantinePath = ({ id, kind }: Address): string =>
  `${clusterPath}/quarantine/${kind}/${id}`
