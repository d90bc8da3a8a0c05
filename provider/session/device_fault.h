/* provider/session/device_fault.h names what is wrong with a device when a subtask fails by it. The
 * numbers travel from a jail's resident to the agent; both are of one build. */
#ifndef BOURSE_PROVIDER_SESSION_DEVICE_FAULT_H
#define BOURSE_PROVIDER_SESSION_DEVICE_FAULT_H

enum device_fault {
    DEVICE_FAULT_NONE,   /* the device did what it was asked, or the subtask is to blame */
    DEVICE_FAULT_OTHER,  /* the text alone says what is wrong */
    DEVICE_FAULT_LOST,   /* the device is not there any more, or its hardware failed */
    DEVICE_FAULT_MEMORY, /* the device has no memory left before a job asks for any */
    DEVICE_FAULT_HANG,   /* a jail on the device cannot be ended: a call of the driver hangs */
    DEVICE_FAULT_DRIVER, /* the driver is missing, does not start, or is of a wrong version */
    DEVICE_FAULTS
};

#endif
