/** The extension's own commands; some take a URI. */

export const RUN = "trainshift.runWithHorovod";
export const PROVE = "trainshift.prove";
export const CHOOSE_KERAS = "trainshift.chooseKeras";
export const CHOOSE_PYTHON = "trainshift.choosePython";
export const CHECK_HOROVOD = "trainshift.checkHorovod";
