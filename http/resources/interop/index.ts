/** Documents of other standards: Linked Data Notifications. */
export { activityOf, isLinkedData, readLinkedData, writeLinkedData } from "./linked-data.ts"
