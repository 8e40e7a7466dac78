/** The settings of a node: their values, and where each comes from. */
export { adminTokenOf, adminTokenProblem, allSettings, baseUrlOf, isLoopback, isSecretSetting,
  isTls, type LoadedSettings, loadSettings, mayMakeSecretKey, natsProblem, natsWeakness,
  type NodeSettings, replacementOfFlag, resolvedOn, type ResolvedSetting, settingsWith,
  storageLocation } from "./settings.ts"
export { isNodeName, keySetSourceOf, type ListenAddress } from "./values.ts"
