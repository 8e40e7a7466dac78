/** The settings of a node: their values, and where each comes from. */
export { adminTokenOf, allSettings, baseUrlOf, type FoundSetting, type LoadedSettings, loadSettings,
  type NodeSettings } from "./settings.ts"
export { type GivenPlace, givenPlaceOf, isNodeName } from "./values.ts"
