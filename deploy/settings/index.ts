/** The settings of a node: their values, and where each comes from. */
export { adminTokenOf, adminTokenProblem, allSettings, baseUrlOf, isLoopback, isTls,
  type LoadedSettings, loadSettings, mayMakeSecretKey, natsProblem, natsWeakness, type NodeSettings,
  replacementOfFlag, type ResolvedSetting, storageLocation } from "./settings.ts"
export { isNodeName, keySetSourceOf, type ListenAddress } from "./values.ts"
