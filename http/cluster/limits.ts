/** Every bound of `/cluster`. Units stand last in the names. */

/** Quarantined actors that a node tells of, one by one; it counts the others. */
export const quarantinesMax = 50
/** Origins that a node tells of, those in trouble first. */
export const originsMax = 5
/** Nodes whose figures are read at the same time. */
export const nodesReadMax = 16
