/*
 * Computed torque on a microcontroller: one arm, single precision, no allocation.
 *
 * The PUMA 560 of `chasles export puma560 -f inverse_dynamics --dtype float --own-sine -o puma`.
 * On an Arduino, put puma560.h and puma560.c beside the sketch, call `control_step` from a timer,
 * and read and write your own sensors and motors in place of the arrays below.
 */
#include "puma560.h"

#define JOINTS 6U

/* What sensors measured, what the plan asks for, and what motors get: rad, rad/s, rad/s2, N m. */
volatile float measured_q[JOINTS];
volatile float measured_qd[JOINTS];
volatile float planned_q[JOINTS];
volatile float planned_qd[JOINTS];
volatile float planned_qdd[JOINTS];
volatile float motor_torque[JOINTS];

void control_step(void);

/* tau = M (qdd + Kd (error of qd) + Kp (error of q)) + h, once every millisecond. */
void control_step(void)
{
    const float stiffness = 100.0F; /* 1/s2: errors die in some 0.3 s */
    const float damping = 20.0F;    /* 1/s: without overshoot */
    float q[JOINTS];
    float qd[JOINTS];
    float qdd[JOINTS];
    float tau[JOINTS];
    for (size_t k = 0U; k < JOINTS; ++k) {
        q[k] = measured_q[k];
        qd[k] = measured_qd[k];
        qdd[k] = planned_qdd[k] + (damping * (planned_qd[k] - qd[k]))
            + (stiffness * (planned_q[k] - q[k]));
    }
    puma560_inverse_dynamics(q, qd, qdd, tau);
    for (size_t k = 0U; k < JOINTS; ++k) {
        motor_torque[k] = tau[k];
    }
}

int main(void)
{
    for (;;) {
        control_step(); /* in place of a timer */
    }
}
