/** The settings of the node that answers, for admins. */
export { settingsResource } from "./settings-resource.ts"
